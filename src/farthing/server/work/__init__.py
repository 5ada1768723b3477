"""Long work: jobs, and the processes that do them."""
