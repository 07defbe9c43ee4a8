"""A Kubernetes cluster for tests, on this machine: no API server is to be had here, so this is one of ours.

    store.py        objects, their versions, and what has happened to them
    http_api.py     the API over HTTP, as far as clients of ours, kubectl and the official client use it
    kubelet.py      pods as real processes of this machine
    controllers.py  Jobs with a deadline, objects whose owners are gone
    cluster.py      all of it, with a configuration for clients

It follows the documented behaviour of the API: optimistic versions, list and watch, graceful deletion, owners, quota.
It schedules nothing, and knows no user but one.
"""
