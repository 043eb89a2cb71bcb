import CoreData
import Foundation
import StrataLocks

/// The program: runs small programs of several threads in many chosen orders, and checks what holds at the end of each.
@main
enum Main {
    #if Schedules
    private static let programs: [any Program.Type] = [
        Counters.self, Revivals.self, Followers.self, Trees.self, Histories.self, Fetches.self, Closings.self,
        Pins.self, Tasks.self, Copies.self, Remotes.self, Replies.self, Handlers.self, Openings.self, Moves.self,
        Strangers.self, Encounters.self, Brief.self, Drawn.self, Duels.self,
    ]
    #endif

    private static let usage = """
        usage: schedules [PROGRAM …] [options]

          --seed N|random   the first seed (1); the report prints it
          --schedules N     the orders of each program on each store (200)
          --only N          this seed only, twice: the two runs have to make the same choices
          --without N,…     leaves out these calls of a drawn program
          --steps N         the steps among which a strategy places its changes (100 to 3200, by the seed)
          --hunt S          goes round all programs for so much processor time, until one fails
          --beside N        lets a thread run beside one that makes no step for N microseconds: the seed repeats nothing then
          --off GUARD       switches a guard of the library off: the programs that name it have to fail
          --seconds S       ends each program after so much processor time on each store (60)

        Exit codes: 0 all hold, 1 something does not, 3 the harness failed.
        """

    static func main() {
        #if Schedules
        // The order in which a set is read must follow from the seed as well.
        if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
            setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
            var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) } + [nil]
            execv("/proc/self/exe", &arguments)
        }
        do {
            exit(try Lane(Array(CommandLine.arguments.dropFirst()), programs, usage: usage).run() ? 0 : 1)
        } catch {
            print("schedules: \(error)")
            exit(3)
        }
        #else
        print("This build has no scheduler. Build it with --traits Schedules; see the Makefile.")
        exit(3)
        #endif
    }
}
