fuzz_target(import_manifest SOURCES import_manifest.cc MODULES base spec import)
fuzz_target(import_words SOURCES import_words.cc MODULES base spec import)
