/// Which SentencePiece library is installed: it does not say so itself, so it is known by its file and by
/// what it does.
#pragma once

#include "lib/tok/tokenizer.h"

namespace trainwright {

/// Its file is looked for and hashed once in a process. Thread-safe.
const LibraryIdentity& LoadedSentencePiece();

/// Whether the library is older than 0.2.2: it compares sums of unigram scores in double with sums that were
/// rounded to float, so that of two cuts whose sums are equal but for rounding it may take the other one.
/// Later versions (0.2.2 and 0.2.3) compare in float. Asks the library once in a process. Thread-safe.
bool LibraryIsOlderThan022();

}  // namespace trainwright
