"""Serving: which engine, in which layout, answers this traffic best.

The question is ``problem.py`` (model, cluster, ``traffic.py``, objective, constraints); what is started is
``layout.py`` (an engine instance, a deployment of several), in the words of ``words.py``.  ``predict/`` says what an
iteration takes, what a scheduler makes of it and what a request sees; ``engines/`` has one room an engine: its space,
its scheduler and memory rules, its files; ``platforms/`` one for each system that deploys engines; ``search/`` proves
the best deployment; ``plan.py`` is the answer; ``evidence/`` judges predictions by measured points.
"""
