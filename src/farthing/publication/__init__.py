"""Publications of releases: files that others can cite, that programs can read, and that anybody can verify.

PublicationDetails  what only people know of a publication: title, authors, purpose, licence
Author, Contact     who made the release, and whom readers can ask
"""

from farthing.publication.publication_details import Author, Contact, PublicationDetails

__all__ = ["Author", "Contact", "PublicationDetails"]
