# src/service/bind.c, found by test_open_binds
s/answered ? GS_OPEN_BIND_ANSWERED_NS : GS_OPEN_BIND_NS/GS_OPEN_BIND_NS/
