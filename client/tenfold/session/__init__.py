"""Sessions: `Session`, `InteractiveSession`, and the three ways in which they reach a master.

session.py is what programs see; base_session.py runs its steps; fetches.py, feeds.py and step_errors.py are pure.
targets.py chooses a `MasterInterface`: direct_master.py for a server of this process, link_master.py or grpc_master.py
over the network.
Follows TF 1.15's client/session.py in API and wording. Import the module that you need; this package loads none.
"""
