"""How trace files are opened: plain or gzip, lines, JSON documents, folders, archives and Parquet."""
