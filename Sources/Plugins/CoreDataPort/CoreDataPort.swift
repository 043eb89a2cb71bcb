import Foundation
import PackagePlugin

/// `swift package coredata-port [--target NAME] [--drop]`: rewrites sources of Apple's platforms for Linux, in place.
@main
struct CoreDataPort: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) throws {
        var extractor = ArgumentExtractor(arguments)
        let names = extractor.extractOption(named: "target")
        let drops = extractor.extractFlag(named: "drop") > 0
        let tool = try context.tool(named: "StrataModelTool").url
        let targets = names.isEmpty ? context.package.targets : try context.package.targets(named: names)
        for target in targets.compactMap({ $0 as? SwiftSourceModuleTarget }) {
            let process = Process()
            process.executableURL = tool
            process.arguments =
                ["port"] + (drops ? ["--drop"] : []) + target.sourceFiles(withSuffix: "swift").map(\.url.path)
            try process.run()
            process.waitUntilExit()
            guard process.terminationStatus == 0 else {
                Diagnostics.error("The sources of \(target.name) were not rewritten.")
                continue
            }
        }
    }
}
