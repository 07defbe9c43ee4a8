"""slim's input: datasets of records, decoders of their items, readers in parallel, queues of batches."""
