"""Launch scripts of the Bourne shell, followed without running anything.

``tree`` the commands of a script; ``scanning`` where words, quotes and expansions end; ``parser`` text -> tree;
``scope`` variables, and what is not known of them; ``parameters``, ``arithmetic``, ``words`` expansions;
``inputs`` files, here-documents, options;
``conditions`` tests that are true, false or undecided; ``interpreter`` follows the commands and collects launches.
"""
