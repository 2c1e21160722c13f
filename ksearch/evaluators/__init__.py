"""Measures programs: four processes, and nothing the candidate says about correctness is believed.

coordinator (`local`)  knows task, programs and verdicts; bounds time from outside
builder (`builder`)    compiles, jailed, knows sources only
oracle (`oracle`)      makes inputs, computes the reference, judges outputs; no candidate code near it
runner (`runner`)      runs one candidate and is thrown away; forked from a warm template (`template`)
"""
