"""What is measured: recorders while a run goes on, then the summary, the tables and the Result."""
