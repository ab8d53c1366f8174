fuzz_target(probe_capture SOURCES probe_capture.cc MODULES base device probe)
fuzz_target(probe_kfd SOURCES probe_kfd.cc MODULES base device probe)
