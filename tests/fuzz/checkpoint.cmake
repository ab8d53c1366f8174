fuzz_target(gguf SOURCES checkpoint_gguf.cc MODULES base checkpoint model)
fuzz_target(safetensors SOURCES checkpoint_safetensors.cc MODULES base checkpoint)
fuzz_target(config SOURCES checkpoint_config.cc MODULES base checkpoint model)
