"""From a release to a publication: files that others can cite, read by machines, and verify without us.

Publication      what people say of it: title, authors, purpose, licence
Author, Contact  the people in it
"""

from farthing.publication.publication_form import Author, Contact, Publication

__all__ = ["Author", "Contact", "Publication"]
