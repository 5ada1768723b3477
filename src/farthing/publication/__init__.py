"""Publications of releases: files that others can cite, that programs can read, and that anybody can verify.

Publication      the details that only people know: title, authors, purpose, licence
Author, Contact  who made the release, and whom readers can ask
"""

from farthing.publication.publication_form import Author, Contact, Publication

__all__ = ["Author", "Contact", "Publication"]
