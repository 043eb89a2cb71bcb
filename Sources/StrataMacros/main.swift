// The compiler starts this program once for each compilation, and asks it to expand `@Managed` and `@ManagedObject`.
// Only the C library is linked, not Foundation, because each build of every client pays for the start of this program.
// The work is done in a library, because tests that import a macro are built for the host: everything would be built
// twice.

import StrataMacroExpansion

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

do {
    try PluginServer(transport: Transport(input: STDIN_FILENO, output: STDOUT_FILENO)).run()
} catch {
    let line = "StrataMacros: \(error)\n"
    _ = line.utf8CString.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count - 1) }
    exit(EXIT_FAILURE)
}
