fuzz_target(hooks SOURCES hooks_body.cc MODULES base hooks)
