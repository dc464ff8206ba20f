# SPDX-License-Identifier: GPL-3.0-or-later
# Folds the output of perf script by itself, for the test to compare: text of POSIX awk alone.
function finish(    i, line, last) {
    if (program == "") return
    while (frames > 1 && frame[frames] == "[unknown]") frames--
    if (thread == 0 && (frames == 0 || frame[1] ~ idle)) { halted++; program = ""; return }
    line = program
    for (i = frames; i >= 1; i--) line = line ";" frame[i]
    counted[line]++
    program = ""
}
function take(text,    address, name, binary, mark, split_at, i, file) {
    address = text; sub(/^[ \t]+/, "", address); sub(/ .*/, "", address)
    sub(/ \(deleted\)\)$/, ")", text)
    sub(/^[ \t]*[0-9a-f]+ /, "", text)
    split_at = 0
    for (i = 1; i < length(text); i++) if (substr(text, i, 2) == " (") split_at = i
    name = substr(text, 1, split_at - 1)
    binary = substr(text, split_at + 2, length(text) - split_at - 2)
    sub(/\+0x[0-9a-f]+$/, "", name)
    mark = ""
    if (length(address) == 16 && address ~ /^[89a-f]/) mark = "_[k]"
    else if (binary ~ /^(\/tmp\/perf-|\/\/anon|\[anon|\/memfd:)/) mark = "_[j]"
    if (name == "[unknown]") {
        file = binary
        sub(/.*\//, "", file); gsub(/^\[+|\]+$/, "", file)
        name = mark == "_[k]" ? "[kernel]_[k]" : mark == "_[j]" ? "[jit]" : binary == "" || binary == "[unknown]" ? "[unknown]" : "[" file "]"
    } else name = name mark
    gsub(/;/, ":", name)
    if (substr(name, 1, 1) == "[" && frames && frame[frames] == name) return
    frame[++frames] = name
}
BEGIN { idle = "^(.*safe_halt|default_idle.*|.*intel_idle.*|acpi_idle.*|mwait_idle.*|poll_idle|arch_cpu_idle|cpu_do_idle|cpuidle.*|do_idle|[[]kernel[]])_[[]k[]]$" }
/^[^ \t]/ {
    finish(); frames = 0
    at = match($0, / +[0-9]+ +\[[0-9]+\] /)
    program = substr($0, 1, at - 1); gsub(/;/, ":", program)
    split(substr($0, at), words, " "); thread = words[1]
    text = substr($0, at); sub(/^ +[0-9]+ +\[[0-9]+\] +[^ ]+: */, "", text)
    if (text != "") take(text)
    next
}
/^[ \t]*$/ { finish(); next }
{ take($0) }
END { finish(); for (line in counted) print line, counted[line]; print "idle", halted + 0 }
