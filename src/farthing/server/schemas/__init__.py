"""What routes answer with: the shapes of JSON, made from the library's own values."""
