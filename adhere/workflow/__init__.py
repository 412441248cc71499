"""What the rules ask: which files, with which parameters, and what is still to do.

Rules hold no logic. They ask one object, ``View``, by a question's name such as
``plan("judge.changed")``, and what they are told is decided and tested here. There is a module for
each stage, named as its rule:

``predict``, ``serve``, ``judge``, ``score``, ``aggregate``, ``teams``
    the questions of that stage
``call``
    what all stages of one call share: its targets, its cells and evaluations
``datasets``, ``gpus``, ``changes``
    the datasets of a call, its share of the machine, what Snakemake cannot know of its results
``writable``
    what is looked at before the first job
"""

from adhere.workflow.view import View, make_view

__all__ = ["View", "make_view"]
