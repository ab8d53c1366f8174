fuzz_target(template SOURCES text_template.cc MODULES base text)
fuzz_target(tokenizer SOURCES text_tokenizer.cc MODULES base text)
fuzz_target(decoder SOURCES text_decoder.cc MODULES base text)
