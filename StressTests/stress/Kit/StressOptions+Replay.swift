extension StressOptions {
    /// The command line that repeats a failure.
    ///
    /// - Parameters:
    ///   - run: The run in which it happened.
    ///   - rest: The options that select it in the run.
    /// - Returns: The line.
    func replay(_ run: Run, _ rest: [String]) -> String {
        var words = ["stress", run.scenario.name, "--seed", "\(seed)", "--store", run.kind.rawValue]
        for knob in run.scenario.knobs where self.knob(knob) != knob.standard {
            words += ["--\(knob.name)", "\(self.knob(knob))"]
        }
        if let policy { words += ["--policy", policy.rawValue] }
        if let batchSize { words += ["--batch-size", "\(batchSize)"] }
        if let sabotage { words += ["--sabotage", sabotage] }
        return (words + rest).joined(separator: " ")
    }
}
