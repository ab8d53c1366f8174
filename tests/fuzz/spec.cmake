fuzz_target(spec SOURCES spec_document.cc MODULES spec base)
