"""What schedulers of batches have in common: the queue, admission, growth and who gives way when memory runs out."""
