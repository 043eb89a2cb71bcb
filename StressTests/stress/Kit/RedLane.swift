import CoreData

/// Runs each sabotage as a separate program, and demands that it is caught for the right reason.
///
/// A checker that never reports a fault proves nothing.
enum RedLane {
    /// Runs the sabotages of all scenarios, or of the named ones.
    ///
    /// - Parameter names: The names of scenarios; empty for all.
    /// - Returns: `.clean` if all were caught.
    /// - Throws: If a program cannot be started.
    static func run(_ names: [String]) throws -> StressExit {
        var missed = 0
        for scenario in allScenarios where names.isEmpty || names.contains(scenario.name) {
            for sabotage in scenario.sabotages {
                guard sabotage.store != .postgresql || DatabasePlace.isThere else {
                    say("red \(scenario.name) \(sabotage.name): left out, as there is no server")
                    continue
                }
                var verdict = try self.verdict(scenario, sabotage, seconds: 4)
                // Little happens in four seconds if the machine has other work to do.
                if !verdict.isCaught { verdict = try self.verdict(scenario, sabotage, seconds: 20) }
                say("red \(scenario.name) \(sabotage.name): \(verdict.text)")
                if !verdict.isCaught { missed += 1 }
            }
        }
        return missed == 0 ? .clean : .anomaly
    }

    private static func verdict(
        _ scenario: any Scenario.Type,
        _ sabotage: Sabotage,
        seconds: Int
    ) throws -> (isCaught: Bool, text: String) {
        let (status, text) = try Child.output(
            [scenario.name, "--sabotage", sabotage.name, "--seconds", "\(seconds)", "--stall", "3"]
                + ((sabotage.store ?? scenario.stores.first { $0 == .sqlite }).map { ["--store", $0.rawValue] } ?? [])
        )
        // The line of figures is left out: the name of a figure is no finding.
        let told = text.split(separator: "\n").filter { !$0.hasPrefix(scenario.name + " seed=") }
        let isCaught =
            (sabotage.exit.map { status == $0.rawValue } ?? (status < 0))
            && told.contains { $0.contains(sabotage.sign) }
        return (isCaught, isCaught ? "caught in \(seconds) s (\(sabotage.sign))" : "MISSED, exit \(status): \(text)")
    }
}
