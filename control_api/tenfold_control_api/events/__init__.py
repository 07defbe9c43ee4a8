"""What happened: an ordered, durable log of events, followed by any number of listeners.

event.py is an event as a value, sources.py makes events of what changes, log.py writes and hands them out, store.py has
the rows, stream.py the server-sent form.
"""
