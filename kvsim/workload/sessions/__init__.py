"""Requests that follow one another: conversations, agents and clients that wait for their answers.

`traffic` is the way in. `laws` says what a session is drawn from, `plan` draws one, `history` what of it later prompts
still hold, `play` is one on its way through its turns, `loop` all of them, and `drive` lets them come: by the clock,
or by the answers of the engine.
"""
