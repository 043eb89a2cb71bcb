/// Suspends the task until `start` has passed on an answer, once, on any thread.
///
/// It is a continuation, except in builds under ThreadSanitizer. If the answer comes before the task has begun to wait,
/// Swift's runtime passes it on in a way that the sanitizer does not see. The sanitizer would report the use of the
/// answer as a race.
nonisolated(nonsending) package func withAnswer<Answer: Sendable>(
    _ start: (@escaping @Sendable (Answer) -> Void) -> Void
) async -> Answer {
    #if STRATA_TSAN
    let box = AnswerBox<Answer>()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
        start { answer in
            box.answer.withLock { $0 = answer }
            continuation.resume()
        }
    }
    guard let answer = box.answer.withLock({ $0 }) else { fatalError("A task was resumed without an answer.") }
    return answer
    #else
    await withCheckedContinuation { continuation in
        start { continuation.resume(returning: $0) }
    }
    #endif
}

#if STRATA_TSAN
private final class AnswerBox<Answer: Sendable>: Sendable {
    let answer = Locked<Answer?>(nil)
}
#endif
