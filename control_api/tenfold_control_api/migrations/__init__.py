"""The steps that make the tables, and bring those of older versions up to date: one file of `versions` each.

run.py runs them with alembic; ../database.py calls it when a service starts, ../backup.py when one is restored. Tables
are made in no other way. A change of ../schema.py needs a step here: a test compares what the steps make with what is
declared there. A step is never changed once a release has it.
"""
