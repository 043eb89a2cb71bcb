import Foundation
import StrataRows
import Synchronization

/// Finds the classes that the text of a model means.
///
/// A class is known whether or not the program has used it: see ``ClassRecords``. If several classes have the name, a use of one
/// (`Venue(context:)`, `NSFetchRequest<Venue>`) tells which is meant. Any thread may call any member.
enum ManagedClasses {
    /// What the name of a class means.
    enum Meaning {
        case found(NSManagedObject.Type)
        /// Several classes have the name, and nothing tells which is meant.
        case ambiguous([NSManagedObject.Type])
        case missing
    }

    private struct State {
        /// The classes that the program has used, and whether another one has the same bare name.
        var used: [ObjectIdentifier: Bool] = [:]
        /// The used classes that the compiler has not recorded, by their bare names.
        var unrecorded: [String: [NSManagedObject.Type]] = [:]
    }

    private static let state = Mutex(State())
    /// The number of uses that may change what a name means.
    private static let uses = Atomic<Int>(0)

    /// A number that grows when names may mean more than before: found classes are looked up anew then.
    static var generation: Int { uses.load(ordering: .acquiring) &+ ClassRecords.imageCount }

    /// Notes that the program uses a class.
    ///
    /// - Returns: Whether another class has the same bare name, so that the entity has to remember which one it means.
    @discardableResult
    static func register(_ type: NSManagedObject.Type) -> Bool {
        guard type != NSManagedObject.self else { return false }
        if let known = state.withLock({ $0.used[ObjectIdentifier(type)] }) { return known }
        let name = bareName(of: type)
        let recorded = recordedClasses(named: name)
        let isRecorded = recorded.contains { $0 == type }
        return state.withLock { state in
            let isShared = recorded.contains { $0 != type } || state.unrecorded[name] != nil
            guard state.used.updateValue(isShared, forKey: ObjectIdentifier(type)) == nil else { return isShared }
            if !isRecorded { state.unrecorded[name, default: []].append(type) }
            if !isRecorded || isShared { uses.add(1, ordering: .releasing) }
            return isShared
        }
    }

    /// The class that a model's text names; of several, the only one that the program has used.
    static func find(_ className: String) -> Meaning {
        let found = candidates(for: className)
        guard found.count > 1 else { return found.first.map(Meaning.found) ?? .missing }
        let used = state.withLock { state in found.filter { state.used[ObjectIdentifier($0)] != nil } }
        return used.count == 1 ? .found(used[0]) : .ambiguous(found)
    }

    /// The classes that a model's text may mean; more than one if several modules have a class of that name.
    static func candidates(for className: String) -> [NSManagedObject.Type] {
        if className.isEmpty || className == "NSManagedObject" { return [NSManagedObject.self] }
        let name = withoutDot(className)
        let bare = name.split(separator: ".").last.map(String.init) ?? name
        let unrecorded = state.withLock { $0.unrecorded[bare] ?? [] }
        let all = recordedClasses(named: bare) + unrecorded
        var found = all.filter { String(reflecting: $0) == name }
        if found.isEmpty { found = all.filter { matches(name, $0) } }
        // A name of another module, as of the app that the model was made for, means a class of the main program.
        if found.isEmpty { found = all.filter { String(reflecting: $0) == mainModule + "." + bare } }
        guard found.isEmpty else {
            // A class that is not inside of something else has the name more than one that is.
            let outer = found.filter(isOuter)
            return outer.isEmpty ? found : outer
        }
        // What is not recorded may be known to the runtime by name, as on Apple's platforms.
        for name in [name, mainModule + "." + bare] where name.contains(".") {
            if let found = FoundationClasses.named(name) as? NSManagedObject.Type { return [found] }
        }
        return []
    }

    /// Whether classes of several modules have the name, so that a guess may be wrong.
    ///
    /// Classes inside of other types do not count: a bare name is not theirs.
    static func isOfSeveralModules(_ className: String) -> Bool {
        let found = candidates(for: className)
        return found.count > 1 && found.allSatisfy(isOuter)
    }

    private static func isOuter(_ type: NSManagedObject.Type) -> Bool {
        String(reflecting: type).split(separator: ".").count == 2
    }

    private static func recordedClasses(named name: String) -> [NSManagedObject.Type] {
        ClassRecords.classes(named: name).compactMap { $0 as? NSManagedObject.Type }
    }

    /// Whether `className`, as a model spells it, can mean `type`: with its module, without, or as a part of the whole name.
    static func matches(_ className: String, _ type: NSManagedObject.Type) -> Bool {
        guard className.hasSuffix(bareName(of: type)) else { return false }
        // Not `NSStringFromClass`, which stops the program for a class that is private or inside another type.
        let full = String(reflecting: type)
        return className == full || full.hasSuffix("." + withoutDot(className))
    }

    static func bareName(of type: NSManagedObject.Type) -> String {
        // A nested class is `Outer.Inner` in full; a model mostly says the last part.
        String(describing: type)
    }

    /// A dot in front stands for the module of the model, as Xcode writes it.
    private static func withoutDot(_ className: String) -> String {
        className.hasPrefix(".") ? String(className.dropFirst()) : className
    }

    /// The module of the executable.
    private static let mainModule: String = {
        let name = Bundle.main.executableURL?.lastPathComponent ?? ""
        return String(name.map { $0.isLetter || $0.isNumber ? $0 : "_" })
    }()
}
