"""Sessions: `Session`, `InteractiveSession`, and the three ways in which they reach a master.

session.py is what programs see; fetches.py, feeds.py and step_errors.py are its pure parts; targets.py chooses a
`MasterInterface` (grpc_master.py over the network, direct_master.py into a server of this process).
Follows TF 1.15's client/session.py in API and wording. Import the module that you need; this package loads none.
"""
