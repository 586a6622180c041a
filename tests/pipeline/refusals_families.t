#!/bin/sh
# What a configuration may say and these families do not compute is refused by the
# key's name, whatever the checkpoint holds.
. tests/support/tap.sh
. tests/support/parity.sh
command -v python3 >/dev/null || skip_all "no python3"
runs_still() { # NAME OPTION...: of repack.py
    name=$1
    shift
    rm -rf "$T/pack" "$T/still"
    python3 tests/support/repack.py "$A" "$T/pack" "$@"
    runs 0 "$name: still runs" "$(bin forward)" --model "$T/pack" \
        --parity "$A/parity.json" --out "$T/still"
}

A=fixtures/families/minimax-m2
for method in awq gptq bitsandbytes mxfp4 modelopt; do
    refused 4 "'quantization_config' names the method '$method'" \
        --set "quantization_config={\"quant_method\": \"$method\"}"
done
refused 4 "'quantization_config' names the form 'float8_e5m2'" \
    --set 'quantization_config={"quant_method": "fp8", "fmt": "float8_e5m2"}'
refused 4 "'quantization_config' names the form 'nvfp4-pack-quantized'" --set \
    'quantization_config={"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}'
runs_still "a method that is decoded" \
    --set 'quantization_config={"quant_method": "fp8", "fmt": "e4m3"}'
runs_still "no method" --set quantization_config=null
refused 4 "'hidden_act' is 'gelu'" --set 'hidden_act="gelu"'
refused 4 "'rope_parameters.rope_type' is 'longrope'" \
    --set 'rope_parameters.rope_type="longrope"'
for key in attention_bias layer_types _attn_implementation swiglu_limit; do
    refused 4 "'$key' is not known" --set "$key=1"
done

A=fixtures/families/kimi-k2.5
refused 4 "'text_config.quantization_config' names the form 'int-quantized'" --set \
    'text_config.quantization_config={"quant_method": "compressed-tensors", "format": "int-quantized"}'
refused 4 "'text_config.partial_rotary_factor' is not 1" \
    --set text_config.rope_parameters.partial_rotary_factor=0.5
for key in use_sliding_window layer_types attn_logit_softcapping; do
    refused 4 "'text_config.$key' is not known" --set "text_config.$key=1"
done
for key in n_shared_experts q_lora_rank; do
    refused 3 "'text_config.$key' is not a count" --set "text_config.$key=0"
done
runs_still "how many further predictors there are" --set text_config.num_mtp_layers=1

# An image's place is token 0, as Transformers embeds it without the image.
rm -rf "$T/pack"
python3 tests/support/repack.py "$A" "$T/pack" --set image_token_id=38 --set video_token_id=39
runs 0 "other ids of images" "$(bin forward)" --model "$T/pack" \
    --parity "$A/parity.json" --precision bf16 --out "$T/ids"
runs 0 "compared" "$(bin compare)" --parity "$A/parity.json" --text "$T/ids"
awk '$1 == "overall.relativeError:" { exit !($2 > 0.01) }' "$T/out"
ok $? "are seen"
done_testing
