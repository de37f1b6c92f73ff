"""The rows of the table, in order, and what cannot be played on both."""

from rows import catalogue, errors, requests, restrictions, sessions, tools  # noqa: F401

# Fix, the test of pith that holds it, and why no row plays it.
NOT_PLAYED = [
    ("D-8", "the provider is called `azure`, and its former name is known", "a_provider_is_found_by_its_former_id", "pith has no models of Azure, and pi does not know the former name any more"),
]
