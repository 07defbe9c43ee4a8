"""Sweeps: `/v1/sweeps`. record.py is one as a value, store.py its row, machine.py decides what starts and stops,
median.py which is worst, driver.py does it, service.py has the operations and looks after all of them. Which settings
there are, and what is started for each, is tenfold/sweeps.
"""
