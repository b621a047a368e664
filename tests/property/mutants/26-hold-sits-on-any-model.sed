# src/core/placement.c: the lists of a nominated pod are not looked at
s/^    ask.selects = ask.model.len .*$/    ask.selects = false;/
