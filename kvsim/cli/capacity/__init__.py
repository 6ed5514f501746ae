"""`kvsim capacity`: options, what they build, and what is shown."""
