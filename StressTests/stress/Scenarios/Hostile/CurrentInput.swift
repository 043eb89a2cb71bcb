import CoreData

/// The input that is being tried, which a trap, or a stop by the watchdog, prints.
///
/// With the command that makes it again.
enum CurrentInput {
    private static let capacity = 1_024
    // nonisolated(unsafe): written by the one thread that makes inputs; a handler that reads it runs in place of that.
    nonisolated(unsafe) private static let text = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    nonisolated(unsafe) private static var length = 0
    nonisolated(unsafe) private static var command = ""

    /// Begins to watch for traps.
    static func prepare(_ run: Run) {
        command = run.options.replay(run, ["--floor", "0", "--input"])
        note(0)
        // Whoever ends the program in the midst of an input, such as the watchdog.
        atexit { _ = write(STDERR_FILENO, CurrentInput.text, CurrentInput.length) }
        #if os(Linux)
        useOwnStack()
        for number in signals {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { CurrentInput.tell($0) }
            action.sa_flags = SA_ONSTACK
            sigaction(number, &action, &before[Int(number)])
        }
        #endif
    }

    /// Notes that all inputs have been tried.
    static func leave() { length = 0 }

    /// Notes which input comes next.
    static func note(_ number: Int) {
        let line = "stress: ended in input \(number): \(command) \(number)\n"
        length = 0
        for byte in line.utf8.prefix(capacity) {
            text[length] = byte
            length += 1
        }
    }

    #if os(Linux)
    private static let signals = [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT]
    // nonisolated(unsafe): written before the handlers are in place, and constant afterwards.
    nonisolated(unsafe) private static let before = {
        let actions = UnsafeMutablePointer<sigaction>.allocate(capacity: 65)
        actions.initialize(repeating: sigaction(), count: 65)
        return actions
    }()

    /// Prints the input; what was there before then gets the signal, as the instruction that trapped is repeated.
    private static func tell(_ number: Int32) {
        _ = write(STDERR_FILENO, text, length)
        sigaction(number, &before[Int(number)], nil)
    }

    /// Gives the handlers a stack of their own, unless there is one: what nests too deeply has used up the thread's.
    private static func useOwnStack() {
        var stack = stack_t()
        guard sigaltstack(nil, &stack) == 0, stack.ss_flags & Int32(SS_DISABLE) != 0 else { return }
        let size = 65_536
        stack = stack_t(ss_sp: .allocate(byteCount: size, alignment: 16), ss_flags: 0, ss_size: size)
        sigaltstack(&stack, nil)
    }
    #endif
}
