"""Sweeps: models x clusters x device counts x lengths x batches, each combination a question of its own.

    question     the axes, as a document
    grid         axes -> cells; each holds its problem, or why it is none
    task         a problem as text, and what came of it
    solving      task -> outcome: what a worker does
    executor     the protocol of who runs tasks, and the choice by name
    serial, processes, ray_tasks    the three who do
    walk         stored answers first, then the executor; every plan is checked and stored by the driver
    answer       one line of the answer
    table        lines -> plain data, CSV, a summary
    errors       what can go wrong with an executor

The database is the only truth: workers never open it, and a sweep that was interrupted goes on from what it holds.
"""
