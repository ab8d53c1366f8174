fuzz_target(http SOURCES http_head.cc MODULES base http)
fuzz_target(request SOURCES request_json.cc MODULES base serve)
fuzz_target(request_stop SOURCES request_stop.cc MODULES base serve)
