"""Requests that follow one another: conversations, agents and clients that wait for their answers.

`loop` is the way in: the traffic, and which sessions there are. `laws` says what a session is drawn from, `draws` with
which chance, `plan` draws one, `history` says what of it later prompts still hold, `play` is one on its way through its
turns, and `drive` lets them come: by the clock, or by the answers of the engine.
"""
