import Foundation

/// A piece of Swift that an article or a symbol's documentation shows.
struct ShownCode {
    /// The file, from the root of the package.
    let file: String
    /// The line of the file that is the first of the block.
    let line: Int
    let code: String

    /// The file and the line.
    var place: String { "\(file):\(line)" }

    static let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The blocks of a page that are marked as Swift.
    static func page(_ path: String) throws -> [ShownCode] {
        fenced(path, try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)) { $0 }
    }

    /// The blocks that documentation comments of some targets have.
    static func comments(in targets: [String]) throws -> [ShownCode] {
        try sources(of: targets).flatMap { file in
            fenced(file.path, file.text) { line in
                let text = line.drop { $0 == " " }
                guard text.hasPrefix("///") else { return nil }
                return String(text.dropFirst(text.hasPrefix("/// ") ? 4 : 3))
            }
        }
    }

    /// The files of some targets: their paths from the root of the package, and what is in them.
    static func sources(of targets: [String]) throws -> [(path: String, text: String)] {
        try targets.flatMap { target in
            let folder = root.appendingPathComponent("Sources/\(target)")
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            let paths = (files?.allObjects as? [URL] ?? []).map(\.path).filter { $0.hasSuffix(".swift") }.sorted()
            return try paths.map { path in
                (String(path.dropFirst(root.path.count + 1)), try String(contentsOfFile: path, encoding: .utf8))
            }
        }
    }

    private static func fenced(_ path: String, _ page: String, _ text: (String) -> String?) -> [ShownCode] {
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false).map { text(String($0)) }
        var found: [ShownCode] = []
        var begun: Int?
        for (number, line) in lines.enumerated() {
            if let start = begun, line?.hasPrefix("```") ?? true {
                found.append(ShownCode(file: path, line: start + 1, code: lines[start..<number].joinedLines()))
                begun = nil
            } else if begun == nil, line == "```swift" {
                begun = number + 1
            }
        }
        return found
    }

    // MARK: - As a part of a program

    /// Whether it is a part of a manifest.
    var isManifest: Bool { code.contains("PackageDescription") || code.contains(".product(name:") }

    /// A namespace with the declarations of the block, and a function with its statements.
    ///
    /// The compiler's messages about it name the page and the line.
    func wrapped(_ number: Int, supplying supplied: [(name: String, code: String)] = supplied) -> String {
        var (declarations, statements) = ("", "")
        for piece in pieces where !piece.text.hasPrefix("import ") {
            // The compiler then names the line of the page.
            let text = "#sourceLocation(file: \"\(file)\", line: \(line + piece.line))\n\(piece.text)\n"
            if piece.isDeclaration { declarations += text } else { statements += text }
        }
        return """
            enum Block\(number) {
            \(declarations)
            @MainActor static func run() async throws {
            #sourceLocation(file: "\(file)", line: \(line))
            \(supplies(for: statements, supplied))
            do {
            \(statements)
            }
            }
            }

            """
    }

    private struct Piece {
        /// Its first line, from 0.
        let line: Int
        var text: String
        let isDeclaration: Bool
    }

    /// The types and statements that begin at the left.
    private var pieces: [Piece] {
        let declaring = /^(@|public |final |private |class |struct |enum |extension |protocol |typealias |actor )/
        var pieces: [Piece] = []
        var isAttribute = false
        let lines = code.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        for (number, line) in lines.enumerated() {
            let begins = !line.isEmpty && !" })]".contains(line.first ?? " ")
            if begins, !isAttribute || pieces.isEmpty {
                pieces.append(Piece(line: number, text: line, isDeclaration: line.firstMatch(of: declaring) != nil))
            } else if pieces.isEmpty {
                continue
            } else {
                pieces[pieces.count - 1].text += "\n" + line
            }
            let isMacro = line.hasPrefix("@Managed") || line.hasPrefix("@Model")
            if begins { isAttribute = isMacro && !line.contains(" class ") }
        }
        return pieces
    }

    /// The names that a block may use without a declaration, in the order in which each can be made.
    static let supplied: [(name: String, code: String)] = [
        ("folder", "let folder = Guide.newFolder()"),
        ("url", "let url = Guide.newFolder().appendingPathComponent(\"guide.sqlite\")"),
        ("description", "let description = NSPersistentStoreDescription(url: url)"),
        ("container", "let container = try Guide.container()"),
        ("coordinator", "let coordinator = container.persistentStoreCoordinator"),
        ("context", "let context = container.viewContext"),
        (
            "backup",
            """
            let backup = Guide.newFolder().appendingPathComponent("backup.sqlite")
            try coordinator.backUp(to: backup)
            """
        ),
        ("model", "let model = container.managedObjectModel"),
        ("entity", "let entity = try Guide.entity(\"Venue\", model)"),
        ("request", "let request = NSFetchRequest<Venue>(entityName: \"Venue\")"),
        ("venue", "let venue = try Guide.first(Venue.self, context)"),
        ("city", "let city = try Guide.first(City.self, context)"),
        ("cityID", "let cityID = try Guide.first(City.self, context).objectID"),
        ("id", "let id = try Guide.first(Venue.self, context).objectID"),
        ("token", "var token = try Guide.token(coordinator)"),
        ("transaction", "let transaction = try Guide.transaction(context)"),
        ("controller", "let controller = try Guide.controller(context)"),
        ("oldURL", "let oldURL = try Guide.oldStore()"),
        ("tenants", "let tenants = try await Guide.tenants()"),
        ("newURL", "let newURL = Guide.newFolder().appendingPathComponent(\"new.sqlite\")"),
        ("old", "let old = try Guide.oldModel()"),
        ("new", "let new = try Guide.model()"),
        ("checksum1", "let checksum1 = NSManagedObjectModel().versionChecksum"),
        (
            "fillPrices",
            """
            let fillPrices = NSCustomMigrationStage(
                migratingFrom: NSManagedObjectModelReference(model: old, versionChecksum: old.versionChecksum),
                to: NSManagedObjectModelReference(model: new, versionChecksum: new.versionChecksum))
            """
        ),
    ]

    /// Whether a name is used by itself, and not as a member or a label.
    private static func isUsed(_ name: String, in text: String) -> Bool {
        func isPart(_ character: Character?) -> Bool {
            character.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
        }
        return text.ranges(of: name).contains { range in
            let (before, after) = (text[..<range.lowerBound].last, text[range.upperBound...].first)
            return before != "." && !isPart(before) && after != ":" && !isPart(after)
        }
    }

    private func supplies(for statements: String, _ supplied: [(name: String, code: String)]) -> String {
        var text = statements
        var lines: [String] = []
        for (name, code) in supplied.reversed() {
            guard Self.isUsed(name, in: text) else { continue }
            lines.insert(code + "; _ = \(name)", at: 0)
            text += code
        }
        return lines.joinedLines()
    }
}

extension Collection where Element == String? {
    fileprivate func joinedLines() -> String { compactMap { $0 }.joined(separator: "\n") }
}

extension Collection where Element == String {
    fileprivate func joinedLines() -> String { joined(separator: "\n") }
}
