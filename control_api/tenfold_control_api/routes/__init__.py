"""The REST routes: decode, call, encode. One module a resource; no decision is made here."""
