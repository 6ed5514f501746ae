"""How large a rate a candidate bears: screened in milliseconds, searched, tried."""
