pip install x && vllm serve "a b" --x='$y "z"' --p="q\"r" c\ d \
 --last "" # e
sleep 1; echo done