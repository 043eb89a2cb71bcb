import StrataSwiftSyntax

/// Rewrites a source file of Apple's platforms so that it compiles on Linux, as far as that can be done word by word.
///
/// `@objc` and its like are put under `#if canImport(ObjectiveC)`, or dropped; `#keyPath` becomes the text that it stands for.
package struct SourcePorter {
    /// What becomes of `@objc`.
    package enum ObjectiveC: Sendable {
        case wrap
        case drop
    }

    /// What cannot be rewritten, and where.
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

    private init(_ text: String, _ objectiveC: ObjectiveC) {
        source = Array(text.utf8)
        cursor = Cursor(text)
        self.objectiveC = objectiveC
    }

    package static func port(_ text: String, _ objectiveC: ObjectiveC = .wrap) -> Result {
        var porter = SourcePorter(text, objectiveC)
        porter.walk()
        return Result(text: porter.edited(), remarks: porter.remarks)
    }

    private mutating func walk() {
        var index = 0
        let tokens = cursor.tokens
        // What already stands under the condition stays as it is.
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
            } else if token.kind == .word {
                word(token, at: index)
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
        // On the line of its declaration it needs lines of its own.
        let isAlone = reader.current?.startsLine ?? true
        edits.append((isAlone ? range : withSpaceBehind(range), isAlone ? wrapped : wrapped + "\n" + indent))
        if !tokens[index].startsLine {
            edits[edits.count - 1].text = "\n\(indent)" + edits[edits.count - 1].text
        }
        return reader.index - 1
    }

    // MARK: - Key paths

    /// `#keyPath(Venue.city.name)` becomes `"city.name"`.
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

    // MARK: - What has no counterpart

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

    private mutating func word(_ token: Token, at index: Int) {
        if token.text == "import", token.startsLine, index + 1 < cursor.tokens.count {
            let module = cursor.tokens[index + 1].text
            if Self.missingModules.contains(module) { remark(token, "there is no module \(module) on Linux") }
        } else if let reason = Self.missingTypes[token.text] {
            remark(token, "\(token.text): \(reason)")
        }
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

    /// The range with the white space behind it, up to the next word: also over the end of the line.
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
