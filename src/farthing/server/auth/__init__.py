"""Who is there and what they may do: passwords, login sessions, one-time links, API tokens, sign-in at a provider."""
