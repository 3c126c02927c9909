# What is a name or a path is completed as both: presets of models, and the templates, all that there are.
set +e  # as in the shell where it happens
touch llama-own.json chatml-own.txt
complete_words train --model llama-1
echo "${COMPREPLY[*]}"
complete_words train --model llama-o
echo "${COMPREPLY[*]}"
for tool in pretokenize generate embed evaluate; do
  complete_words $tool --template chatml
  echo "$tool ${COMPREPLY[*]}"
done
rm llama-own.json chatml-own.txt
complete_words pretokenize --template ''
printf '%s\n' "${COMPREPLY[@]}" | sort > offered
echo '{"messages": []}' | pretokenize --records sft --template nowhere > /dev/null 2> err
sed -n 's/.*hint: built in are //p' err | sed 's/, /\n/g' | sort > built-in
test -s built-in && diff offered built-in && echo 'all templates'
