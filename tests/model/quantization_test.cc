// quantization_config: what each method makes of the weights' size, and what is refused.
#include "model/quantization.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

// "" or the refusal.
std::string Read(const Json& settings, Quantization& quantization) {
  Json config = {{"quantization_config", settings}};
  ConfigReader reader(config, "config.json");
  quantization = ReadQuantization(reader);
  return Text(reader.problems());
}

TEST(Quantization, BitsCountTheScales) {
  struct Case {
    Json settings;
    double linear_bits, expert_bits;
  };
  const Json group4 = {{"weights", {{"num_bits", 4}, {"group_size", 32}}}};
  const Case cases[] = {
      {{{"quant_method", "fp8"}}, 8, 8},
      {{{"quant_method", "fbgemm_fp8"}}, 8, 8},
      {{{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}}, 4.125, 4.125},
      {{{"quant_method", "gptq"}, {"bits", 8}, {"group_size", -1}}, 8, 8},
      {{{"quant_method", "mxfp4"}}, 4.25, 4.25},
      {{{"quant_method", "mxfp4"}, {"modules_to_not_convert", {"model.layers.*.self_attn"}}},
       0,
       4.25},
      {{{"quant_method", "compressed-tensors"}, {"config_groups", {{"group_0", group4}}}},
       4.5,
       4.5},
      {{{"quant_method", "compressed-tensors"},
        {"config_groups", {{"group_0", group4}}},
        {"ignore", {"lm_head", "re:.*self_attn.*"}}},
       0,
       4.5},
      {{{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}}, 4.25, 4.25},
      {{{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}, 8, 8},
      {{{"quant_method", "modelopt"}, {"quant_algo", "FP8"}}, 8, 8},
      {{{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}, 4.5, 4.5},
  };
  for (const Case& expected : cases) {
    Quantization read;
    EXPECT_EQ(Read(expected.settings, read), "") << expected.settings;
    EXPECT_EQ(read.linear_bits, expected.linear_bits) << expected.settings;
    EXPECT_EQ(read.expert_bits, expected.expert_bits) << expected.settings;
    EXPECT_EQ(read.method, expected.settings["quant_method"]);
  }
}

TEST(Quantization, RefusesWhatItDoesNotKnowByName) {
  struct Case {
    Json settings;
    std::string_view refusal;
  };
  const Case cases[] = {
      {{{"quant_method", "gptq2"}},
       "config.json quantization_config.quant_method: \"gptq2\" is not supported: awq, "
       "bitsandbytes, compressed-tensors, fbgemm_fp8, fp8, gptq, modelopt, modelopt_fp4 or mxfp4; "
       "did the file mean gptq"},
      {{{"bits", 4}},
       "config.json quantization_config.quant_method: \"\" is not supported: awq, bitsandbytes, "
       "compressed-tensors, fbgemm_fp8, fp8, gptq, modelopt, modelopt_fp4 or mxfp4; choose a "
       "checkpoint with one of these"},
      {{{"quant_method", "gptq"}, {"bits", 64}},
       "config.json quantization_config.bits: 64: an integer from 2 to 8; use the model's original "
       "files"},
      {{{"quant_method", "modelopt"}, {"quant_algo", "INT3"}},
       "config.json quantization_config.quant_algo: \"INT3\" is not supported: FP8 or NVFP4; "
       "choose "
       "a checkpoint with one of these"},
      {{{"quant_method", "compressed-tensors"}},
       "config.json quantization_config.config_groups: holds no group: a group with the bits of "
       "its "
       "weights; use the model's original files"},
      {{{"quant_method", "compressed-tensors"}, {"config_groups", {{"group_0", Json::object()}}}},
       "config.json quantization_config.config_groups.weights.num_bits: is missing: an integer "
       "from "
       "2 to 8; use the model's original files"},
  };
  for (const Case& expected : cases) {
    Quantization read;
    EXPECT_EQ(Read(expected.settings, read), expected.refusal);
  }
}

TEST(Quantization, AbsentMeansNone) {
  Json config = Json::object();
  ConfigReader reader(config, "config.json");
  EXPECT_EQ(ReadQuantization(reader).method, "");
  EXPECT_TRUE(reader.problems().empty());
}

}  // namespace
}  // namespace ashlar
