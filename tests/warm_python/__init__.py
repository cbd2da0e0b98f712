"""An interpreter for tests that has imported already: launches of ranks spend most of their time importing.

``server.py`` imports once and forks; ``client.py`` takes the interpreter's place in a command and hands its words,
environment, folder and streams to the server; ``interpreters.py`` starts a server for each environment that tests ask
for.  Emitted files run as they are: they find ``python`` and ``torchrun`` through PATH and PYTHON.

What a warm start cannot show, and a launch of every target with the real interpreter therefore does: that the files
import what they need, and that ranks whose strings hash differently (PYTHONHASHSEED; forks share it) agree.
"""
