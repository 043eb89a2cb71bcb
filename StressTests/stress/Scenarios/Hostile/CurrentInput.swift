import CoreData

/// The current input, which is printed if a trap or the watchdog ends the program.
///
/// It is printed with the command that makes the same input again.
enum CurrentInput {
    private static let capacity = 1_024
    // nonisolated(unsafe): one thread makes the inputs and writes this. A handler that reads it interrupts that
    // thread.
    nonisolated(unsafe) private static let text = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    nonisolated(unsafe) private static var length = 0
    nonisolated(unsafe) private static var command = ""

    /// Sets up the handlers for traps.
    static func prepare(_ run: Run) {
        command = run.options.replay(run, ["--floor", "0", "--input"])
        note(0)
        // This covers an `exit` during an input, such as that of the watchdog.
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

    /// Records that all inputs have been tried.
    static func leave() { length = 0 }

    /// Records the number of the next input.
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

    /// Prints the input, and restores the former handler.
    ///
    /// It gets the signal when the instruction that trapped is repeated.
    private static func tell(_ number: Int32) {
        _ = write(STDERR_FILENO, text, length)
        sigaction(number, &before[Int(number)], nil)
    }

    /// Gives the handlers their own stack, unless there is one: input that nests too deeply may have used up the
    /// thread's.
    private static func useOwnStack() {
        var stack = stack_t()
        guard sigaltstack(nil, &stack) == 0, stack.ss_flags & Int32(SS_DISABLE) != 0 else { return }
        let size = 65_536
        stack = stack_t(ss_sp: .allocate(byteCount: size, alignment: 16), ss_flags: 0, ss_size: size)
        sigaltstack(&stack, nil)
    }
    #endif
}
