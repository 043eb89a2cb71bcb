import StrataSwiftSyntax

/// Rewrites a source file of Apple's platforms so that it compiles on Linux, as far as single words allow it.
///
/// `@objc` and similar attributes are put under `#if canImport(ObjectiveC)`, or dropped. `#keyPath` becomes the text of
/// its path, also in the interpolations of strings. Initialisers that subclasses must have become `required`.
package struct SourcePorter {
    /// The treatment of `@objc`.
    package enum ObjectiveC: Sendable {
        case wrap
        case drop
    }

    /// A part that cannot be rewritten, and its place.
    package struct Remark: Equatable, Sendable {
        package let line: Int
        package let message: String
    }

    package struct Result: Sendable {
        package let text: String
        package let remarks: [Remark]
    }

    private let source: [UInt8]
    private let cursor: Cursor
    private let objectiveC: ObjectiveC
    private var edits: [(range: Range<Int>, text: String)] = []
    private var remarks: [Remark] = []
    /// The scopes of the enclosing braces, the outermost first.
    private var scopes: [Scope] = []
    private var nextScope = Scope.other

    private enum Scope {
        case classBody
        case extensionBody
        case other
    }

    private init(_ text: String, _ objectiveC: ObjectiveC) {
        source = Array(text.utf8)
        cursor = Cursor(text)
        self.objectiveC = objectiveC
    }

    package static func port(_ text: String, _ objectiveC: ObjectiveC = .wrap) -> Result {
        var porter = SourcePorter(text, objectiveC)
        porter.walk()
        porter.migrationMethods()
        return Result(text: porter.edited(), remarks: porter.remarks.sorted { $0.line < $1.line })
    }

    private mutating func walk() {
        var index = 0
        let tokens = cursor.tokens
        // Code that is already under the condition stays unchanged.
        var conditions: [Bool] = []
        while index < tokens.count {
            let token = tokens[index]
            let next = index + 1 < tokens.count ? tokens[index + 1] : nil
            if token.text == "#", let next, !next.isSpaced {
                switch next.text {
                case "if":
                    let line = lineText(at: token.range.lowerBound)
                    conditions.append(line.contains("canImport(ObjectiveC)") && !line.contains("!"))
                case "endif": _ = conditions.popLast()
                case "keyPath": index = keyPath(at: index)
                case "selector": remark(token, "#selector needs the Objective-C runtime; use a closure")
                default: break
                }
            } else if token.text == "@", let next, !next.isSpaced, !conditions.contains(true) {
                index = attribute(at: index, named: next.text)
            } else if token.text == "{" {
                scopes.append(nextScope)
                nextScope = .other
            } else if token.text == "}" {
                _ = scopes.popLast()
            } else if source[token.range].contains(UInt8(ascii: "\"")) {
                interpolations(of: token)
            } else if token.kind == .word {
                index = word(token, at: index)
            }
            index += 1
        }
    }

    // MARK: - Attributes

    private mutating func attribute(at index: Int, named name: String) -> Int {
        switch name {
        case "objc", "objcMembers", "IBDesignable", "UIApplicationMain", "NSApplicationMain": break
        case "IBOutlet", "IBAction", "IBInspectable":
            remark(cursor.tokens[index], "@\(name) belongs to a user interface")
            return index
        case "FetchRequest", "SectionedFetchRequest", "Environment", "State", "ObservedObject", "Published":
            remark(cursor.tokens[index], "@\(name) is part of SwiftUI or Combine")
            return index
        default: return index
        }
        var reader = cursor
        reader.move(to: index)
        guard reader.readAttribute() != nil else { return index }
        let tokens = cursor.tokens
        let range = tokens[index].range.lowerBound..<tokens[reader.index - 1].range.upperBound
        if reader.current?.text == "optional" {
            remark(
                tokens[index],
                "an optional requirement needs the Objective-C runtime; give it a default in an extension"
            )
        }
        guard objectiveC == .wrap else {
            edits.append((withSpaceBehind(range), ""))
            return reader.index - 1
        }
        let attribute = text(range)
        let indent = indentation(at: range.lowerBound)
        let wrapped = "#if canImport(ObjectiveC)\n\(indent)\(attribute)\n\(indent)#endif"
        // If it is on the line of its declaration, it has to move to a separate line.
        let isAlone = reader.current?.startsLine ?? true
        edits.append((isAlone ? range : withSpaceBehind(range), isAlone ? wrapped : wrapped + "\n" + indent))
        if !tokens[index].startsLine {
            edits[edits.count - 1].text = "\n\(indent)" + edits[edits.count - 1].text
        }
        return reader.index - 1
    }

    // MARK: - Key paths

    /// Replaces `#keyPath(Venue.city.name)` by `"city.name"`.
    private mutating func keyPath(at index: Int) -> Int {
        var reader = cursor
        reader.move(to: index + 2)
        guard reader.isAt("(") else { return index }
        let start = index + 3
        reader.skipBalanced()
        let end = reader.index - 1
        let words = cursor.tokens[start..<max(start, end)].filter { $0.kind == .word }.map(\.text)
        // The names of types begin with a capital letter.
        let path = words.drop { $0.first?.isUppercase == true || $0 == "self" }
        guard !path.isEmpty, cursor.tokens[start..<end].allSatisfy({ $0.kind == .word || $0.text == "." }) else {
            remark(cursor.tokens[index], "#keyPath is not understood; write its path as a text")
            return index
        }
        let range = cursor.tokens[index].range.lowerBound..<cursor.tokens[end].range.upperBound
        edits.append((range, "\"\(path.joined(separator: "."))\""))
        return end
    }

    // MARK: - Code without a counterpart

    private static let missingModules: Set = [
        "UIKit", "AppKit", "SwiftUI", "Combine", "CloudKit", "CoreSpotlight", "WidgetKit", "WatchKit", "CoreLocation",
        "MapKit",
        "ObjectiveC", "os", "OSLog", "Intents", "UserNotifications",
    ]

    private static let missingTypes: [String: String] = [
        "NSPersistentCloudKitContainer": "there is no CloudKit on Linux; use NSPersistentContainer",
        "NSCoreDataCoreSpotlightDelegate": "there is no Spotlight on Linux",
        "NSKeyValueObservation": "there is no key-value observing on Linux; follow the context's notifications",
        "CKContainer": "there is no CloudKit on Linux",
        "UIImage": "there is no UIKit on Linux; keep the data of the image",
        "UIColor": "there is no UIKit on Linux; keep the components of the colour",
        "NSColor": "there is no AppKit on Linux; keep the components of the colour",
    ]

    /// - Returns: The index of the last token that was processed.
    private mutating func word(_ token: Token, at index: Int) -> Int {
        switch token.text {
        case "class" where index + 1 < cursor.tokens.count && cursor.tokens[index + 1].kind == .word:
            // In `class func`, `class` is a modifier, and the function's own keyword follows.
            nextScope = .classBody
        case "extension": nextScope = .extensionBody
        case "func", "var", "let", "struct", "enum", "protocol", "actor", "subscript": nextScope = .other
        case "init": initialiser(at: index)
        case "override" where scopes.last == .extensionBody:
            remark(
                token,
                "an override in an extension needs the Objective-C runtime; move it into the body of the class"
            )
        case "as": return cast(at: index)
        case "NSStringFromSelector": return nameOfGetter(at: index)
        case "Foundation" where isFollowed(index, by: [".", "ValueTransformer"]):
            remark(token, "the framework has a class ValueTransformer of its own; write it without Foundation")
        default: break
        }
        if token.text == "import", token.startsLine, index + 1 < cursor.tokens.count {
            let module = cursor.tokens[index + 1].text
            if Self.missingModules.contains(module) { remark(token, "there is no module \(module) on Linux") }
        } else if let reason = Self.missingTypes[token.text] {
            remark(token, "\(token.text): \(reason)")
        }
        return index
    }

    /// Ports the methods that a mapping model may call by their selectors.
    private mutating func migrationMethods() {
        for method in MigrationMethods.unlisted(in: cursor) {
            remark(
                method.token,
                """
                methods are not found by selector on Linux; if a mapping model calls \(method.selector) with FUNCTION(…), \
                list it in function(named:)
                """
            )
        }
    }

    private func isFollowed(_ index: Int, by texts: [String]) -> Bool {
        cursor.tokens.dropFirst(index + 1).prefix(texts.count).map(\.text) == texts
    }

    // MARK: - Initialisers

    /// Makes the two initialisers of a managed object `required`, which they must be on Linux.
    private mutating func initialiser(at index: Int) {
        nextScope = .other
        let tokens = cursor.tokens
        guard scopes.last == .classBody,
            isFollowed(index, by: ["(", "context"]) || isFollowed(index, by: ["(", "entity"])
        else { return }
        var reader = cursor
        reader.move(to: index + 1)
        reader.skipBalanced()
        let words = tokens[index + 2..<max(index + 2, reader.index - 1)].map(\.text)
        let labels = words.indices.filter { $0 == 0 || words[$0 - 1] == "," }.map { words[$0] }
        guard labels == ["context"] || labels == ["entity", "insertInto"], words.contains("NSManagedObjectContext")
        else { return }
        var first = index
        let modifiers: Set = [
            "override", "convenience", "public", "open", "internal", "package", "fileprivate", "private", "nonisolated",
        ]
        while first > 0, modifiers.contains(tokens[first - 1].text) { first -= 1 }
        guard first == 0 || tokens[first - 1].text != "required" else { return }
        if let override = tokens[first..<index].first(where: { $0.text == "override" }) {
            edits.append((override.range, "required"))
        } else {
            let last = tokens[first..<index].last { $0.text == "convenience" } ?? tokens[index]
            edits.append((last.range.lowerBound..<last.range.lowerBound, "required "))
        }
    }

    // MARK: - Casts and selectors

    /// Replaces `x as! NSFetchRequest<T>` by `x.typed(as: T.self)`.
    private mutating func cast(at index: Int) -> Int {
        let tokens = cursor.tokens
        guard index > 0, isFollowed(index, by: ["!", "NSFetchRequest", "<"]) else { return index }
        var reader = cursor
        reader.move(to: index + 3)
        reader.readGenericArguments()
        let before = tokens[index - 1]
        let type = text(tokens[index + 3].range.upperBound..<tokens[reader.index - 1].range.lowerBound)
        let isCopy = index > 3 && tokens[index - 4..<index].map(\.text) == [".", "copy", "(", ")"]
        guard before.text == ")" || before.kind == .word || before.text == "!", !isCopy else {
            remark(tokens[index], "a request does not convert to NSFetchRequest<\(type)>; use typed(as:)")
            return reader.index - 1
        }
        let range = before.range.upperBound..<tokens[reader.index - 1].range.upperBound
        edits.append((range, ".typed(as: \(type).self)"))
        return reader.index - 1
    }

    /// Replaces `NSStringFromSelector(#selector(getter: Venue.name))` by `"name"`.
    private mutating func nameOfGetter(at index: Int) -> Int {
        guard isFollowed(index, by: ["(", "#", "selector", "(", "getter", ":"]) else { return index }
        var reader = cursor
        reader.move(to: index + 1)
        reader.skipBalanced()
        let end = reader.index - 1
        let words = cursor.tokens[index + 7..<max(index + 7, end - 1)]
        guard let name = words.last, name.kind == .word, words.allSatisfy({ $0.kind == .word || $0.text == "." })
        else { return index }
        edits.append((cursor.tokens[index].range.lowerBound..<cursor.tokens[end].range.upperBound, "\"\(name.text)\""))
        return end
    }

    // MARK: - Interpolations

    /// Rewrites the code in the interpolations of a string.
    private mutating func interpolations(of token: Token) {
        let bytes = Array(source[token.range])
        let pounds = bytes.prefix { $0 == UInt8(ascii: "#") }
        let opening = [UInt8(ascii: "\\")] + pounds + [UInt8(ascii: "(")]
        var place = 0
        while place + opening.count <= bytes.count {
            guard bytes[place..<place + opening.count].elementsEqual(opening) else {
                // An escaped character does not begin an interpolation.
                place += bytes[place] == UInt8(ascii: "\\") && pounds.isEmpty ? 2 : 1
                continue
            }
            let rest = String(decoding: bytes[(place + opening.count - 1)...], as: UTF8.self)
            var reader = Cursor(rest)
            reader.skipBalanced()
            guard reader.index > 1 else { return }
            let length = reader.tokens[reader.index - 1].range.upperBound
            let inner = String(decoding: Array(rest.utf8)[1..<length - 1], as: UTF8.self)
            let end = place + opening.count - 1 + length
            if inner.contains("#keyPath") || inner.contains("NSStringFromSelector") {
                let start = token.range.lowerBound
                let ported = Self.port(inner, objectiveC)
                if let path = Self.literal(ported.text) {
                    edits.append((start + place..<start + end, path))
                } else {
                    edits.append((start + place + opening.count..<start + end - 1, ported.text))
                }
                let line = line(of: start)
                remarks += ported.remarks.map { Remark(line: line + $0.line - 1, message: $0.message) }
            }
            place = end
        }
    }

    /// The content of a text that is a single string literal without escapes; `nil` for any other text.
    private static func literal(_ text: String) -> String? {
        guard text.utf8.count > 1, text.hasPrefix("\""), text.hasSuffix("\"") else { return nil }
        let content = text.dropFirst().dropLast()
        return content.utf8.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") } ? nil : String(content)
    }

    private mutating func remark(_ token: Token, _ message: String) {
        remarks.append(Remark(line: line(of: token.range.lowerBound), message: message))
    }

    // MARK: - Text

    private func text(_ range: Range<Int>) -> String { String(decoding: source[range], as: UTF8.self) }

    private func line(of offset: Int) -> Int { source[..<offset].count { $0 == 10 } + 1 }

    private func lineText(at offset: Int) -> String {
        let end = source[offset...].firstIndex(of: 10) ?? source.count
        return text(offset..<end)
    }

    private func indentation(at offset: Int) -> String {
        let start = source[..<offset].lastIndex(of: 10).map { $0 + 1 } ?? 0
        let end = source[start..<offset].firstIndex { $0 != 0x20 && $0 != 0x09 } ?? offset
        return text(start..<end)
    }

    /// The range with the white space behind it, up to the next word, including line ends.
    private func withSpaceBehind(_ range: Range<Int>) -> Range<Int> {
        let end = source[range.upperBound...].firstIndex { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } ?? source.count
        return range.lowerBound..<end
    }

    private func edited() -> String {
        var result: [UInt8] = []
        var position = 0
        for edit in edits {
            result += source[position..<edit.range.lowerBound]
            result += edit.text.utf8
            position = edit.range.upperBound
        }
        result += source[position...]
        return String(decoding: result, as: UTF8.self)
    }
}
